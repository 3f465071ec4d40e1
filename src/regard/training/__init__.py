"""Training: the loop, its data, the schedule and the run folder. Independent of the architecture: a model gives logits.

Import names from their modules. This file imports nothing, so that a recipe can be read without torch.
"""
