"""Training: a loop, its data, its schedule, its runs. It knows no architecture: any module that gives logits will do.

Names are imported from their files, so that a recipe can be read without torch.
"""
