"""Names, places and outlines of areas, for pages with a map."""

import json
from pathlib import Path

from inftda.tree.hierarchy import Hierarchy


def labelled(areas: Hierarchy, folder: Path) -> dict[str, Path]:
    """Names, places and outlines for the finest areas, one of each kind missing."""
    codes = areas.codes(areas.depth).to_pylist()
    at = {code: (8 + i % 10 / 5, 44 + i // 10 / 5) for i, code in enumerate(codes)}
    rows = [f"{code},Tòwn {code},{lon},{lat}" for code, (lon, lat) in at.items()]
    rows[-1] = f"{codes[-1]},,,"
    (folder / "c.csv").write_text("\n".join(["municipality,name,lon,lat", *rows]), "utf-8")
    (folder / "n.csv").write_text(
        "level,code,name\nregion,1,Northland\nregion,2,Südland\n", "utf-8"
    )
    features = [
        {
            "type": "Feature",
            "properties": {"code": code},
            "geometry": {
                "type": "Polygon",
                "coordinates": [
                    [[x - 0.1, y - 0.1], [x + 0.1, y - 0.1], [x, y + 0.1], [x - 0.1, y - 0.1]]
                ],
            },
        }
        for code, (x, y) in at.items()
    ]
    (folder / "g.json").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return {"names": folder / "n.csv", "centroids": folder / "c.csv", "geojson": folder / "g.json"}
