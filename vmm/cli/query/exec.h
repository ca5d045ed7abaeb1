/* exec.h - `vmp exec`, as far as its parts are to be called. */
#ifndef VMM_CLI_QUERY_EXEC_H
#define VMM_CLI_QUERY_EXEC_H

#include "base/agent_abi.h"
#include "vmm/cli/options.h"

/* What shall run, as base/agent_abi.h says; `term`: the terminal's kind, or NULL. The caller frees
 * it. */
char *exec_spec(const struct options *o, const char *term, size_t *bytes);

#endif
