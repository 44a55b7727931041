"""Text that a terminal or a notebook shows and does not obey."""


def printable(text: str) -> str:
    """A text without anything that a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else _code(sign) for sign in text)


def _code(sign: str) -> str:
    """A character by its number."""
    number = ord(sign)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
