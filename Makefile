SHELL := /bin/bash
.DEFAULT_GOAL := help
include test/tools/tools.mk
