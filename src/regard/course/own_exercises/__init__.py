"""Exercises of a teacher's own: a folder written from a template, loaded, verified, and used to grade a class."""
