"""ARTIFACTS: recipes, DAGs, plan, command line. No numbers are crunched here."""
