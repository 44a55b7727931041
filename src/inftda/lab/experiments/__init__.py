"""The paper's data sets, tables and figures."""
