"""What other programs start the report by."""
