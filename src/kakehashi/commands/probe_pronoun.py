def pronoun() -> None:
    """x"""
