"""Never gets as far as its function."""
while True:
    pass
