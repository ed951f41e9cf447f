"""What must hold for each contract: one file a contract, one function `sheets` in each."""
