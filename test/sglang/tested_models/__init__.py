"""The models that tests load, for `SGLANG_EXTERNAL_MODEL_PACKAGE`: SGLang then does not import its other 200."""
