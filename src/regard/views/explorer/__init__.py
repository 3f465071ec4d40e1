"""The explorer: one picture of attention for notebook, browser and file. A source answers, the front end draws.

answers     what a source returns: JSON values and arrays, their binary form, and messages
source      TraceSource: overview, head, rectangle, explain, effect, compare
page        `trace.html`: answers stored in one file
widget      `trace.widget`: answers computed in the kernel of a notebook
front       the ES modules of the front end, joined into one script
"""
