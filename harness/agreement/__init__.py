"""The judge card: how far a judge agrees with people, and what else has to be known before it is believed."""
