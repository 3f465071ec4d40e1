"""What is said when something cannot be done: what was asked, what was found, what to do. A file for each subject."""
