"""What an office says about a release, for the tests of dossiers."""

REQUIRED = {
    "name": "Commuting in Lakeland, 2024",
    "data_curators": ["Statistical Office", "Ministry of Roads"],
    "intended_use": "Planning of public transport.",
    "data_product_region": "Lakeland",
    "description": "Who commutes where.",
    "publication_date": "2026-01-31",
    "registry_authors": ["A clerk"],
}
ALL = REQUIRED | {
    "data_product_sector": "Government",
    "actors": "The office holds the table and runs the program; everybody reads.",
    "data_source_type": "Static",
    "data_source_type_details": "Census",
    "preprocessing_and_hyperparameter_tuning": "No, epsilon was chosen on a public table",
    "justification": "The committee decided",
    "sources": "https://example.org/paper",
    "notes": "None",
}
