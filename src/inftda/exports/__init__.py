"""Releases and estimates in the formats of maps, models and spreadsheets.

An export is a folder: files of one kind, and `datapackage.json` with their schemas, the guarantee
and warnings to readers. Its only source is the published release or estimate, so it uses no
budget. One module for each kind of file.
"""
