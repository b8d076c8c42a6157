"""From a block program to PTX, machine code and code for the CPU, with what is kept on disk."""
