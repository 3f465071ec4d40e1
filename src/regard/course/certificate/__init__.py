"""The certificate: a page of what was passed, with the answers, so that every item can be run again."""
