"""What a browser makes of a page: elements that nest, their attributes, and text."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "wbr", "img", "input", "circle", "line", "path", "rect"}


class Markup(HTMLParser):
    """Reads markup, and complains if elements do not nest.

    Attributes:
        seen: elements, each with its attributes.
        texts: the element around each piece of text, and the text.
    """

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else None, data))

    @property
    def kinds(self):
        """The kinds of elements, and of their attributes."""
        return {(tag, *sorted(attributes)) for tag, attributes in self.seen}

    @property
    def words(self):
        """What people read, on one line."""
        texts = (data for tag, data in self.texts if tag not in {"script", "style"})
        return " ".join(" ".join(texts).replace("\N{NO-BREAK SPACE}", " ").split())
