"""The command line: `mxrt COMMAND`. A command is a module and a row of :mod:`mxrt.cli.commands`."""
