"""Releases and estimates in the formats that maps, models and spreadsheets read.

An export is a folder: files of one kind, and `datapackage.json`, which says what they hold, what
is promised and what readers must know. It is made from what is published alone, so it costs no
privacy. One module for each kind of file.
"""
