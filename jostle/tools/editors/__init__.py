"""Support for editors and notebooks. Each module imports its library where it is used."""
