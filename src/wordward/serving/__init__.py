"""The parts of the web page's server, and the page itself."""
