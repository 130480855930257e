"""A model as a service on HTTP: requests in a queue, one worker, one page."""
