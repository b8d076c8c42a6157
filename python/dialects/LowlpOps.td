include "lowlp/IR/Lowlp.td"
