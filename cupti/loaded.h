/*
 * loaded.h - the program and the libraries in memory, by address. Each is told once as a MODULE event.
 */
#ifndef UM_LOADED_H
#define UM_LOADED_H

#include <stdbool.h>
#include <stdint.h>

/* Never freed and never changed, so that one found may be used for ever. */
typedef struct um_loaded {
    uintptr_t begin, end, bias;
    const char *name; /* as MODULE says it */
    const char *path;
    const char *build_id;
    bool tooling; /* umrt itself, CUPTI, the driver */
    bool python;  /* an interpreter's */
} um_loaded_t;

/* Looks again if something was loaded or unloaded since: 0.1 us when not. Any thread, also inside a
 * callback; waits for no lock but the loader's, and uses no malloc. */
void um_loaded_refresh(void);

/* What is at that address by the last look; NULL: generated code, or not looked yet. Wait-free. */
const um_loaded_t *um_loaded_at(uintptr_t pc);

/* Changes with every look that found a difference. */
uint64_t um_loaded_generation(void);

#endif
