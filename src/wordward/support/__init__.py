"""What every room stands on: rules for settings, the terminal, devices, random states, files, several processes."""
