"""The abstract interpreter: what each form of the language does to what is known of values before a run."""
