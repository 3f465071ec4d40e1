"""`survey`: what every head of a model does over a corpus, with confidence intervals and the passages that show it"""

from regard.surveys.result import Estimate, Passage, Survey, SurveyHead, read_survey
from regard.surveys.running import survey

__all__ = ["Estimate", "Passage", "Survey", "SurveyHead", "read_survey", "survey"]
