"""What `lowlp bench` does: times `linear` beside the libraries that users could pick instead, and writes the report.

Kernels are compiled ahead into a folder (`preparing`), so that what runs on the GPU (`measuring`, `peers`) needs
lowlp_runtime, numpy and PyTorch only, and neither the compiler nor any extension module of this package. Results are
JSON (`results`); what they must reach is data (`requirements`), judged in `acceptance`; `page` and `plots` show them.
"""
