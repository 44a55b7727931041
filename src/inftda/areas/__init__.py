"""Public areas: hierarchies from files, polygons and grids, and the areas that points lie in.

Everything here is public knowledge and must never be derived from the trips: cells cover an
outline that is known without them, not the points that were seen.
"""
