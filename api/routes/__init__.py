"""The routes, one module per noun. Every route declares a guard of api.auth."""
