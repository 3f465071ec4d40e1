"""How the bundled models were made: each script can be run again by anyone who has the data."""
