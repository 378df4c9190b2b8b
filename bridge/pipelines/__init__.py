"""The verbs: each package joins the steps below it (decode, compact, delta, kafka, encode) into what a verb does."""
