"""The service that collects reports and shows estimates: HTTP over one SQL store."""
