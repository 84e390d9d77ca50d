"""The parts of a report's page."""
