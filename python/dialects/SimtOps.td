include "lowlp/IR/Simt.td"
