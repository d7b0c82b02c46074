/* Hints from the future. */
#include "engine.h"

#include <stdlib.h>

struct um_oracle {
    um_engine_t *engine;
};

um_status_t um_oracle_new(um_engine_t *engine, um_oracle_t **out)
{
    um_oracle_t *oracle = calloc(1, sizeof(*oracle));

    if (!oracle)
        return UM_ERR_NO_MEMORY;
    oracle->engine = engine;
    *out = oracle;
    return UM_OK;
}

void um_oracle_free(um_oracle_t *oracle)
{
    free(oracle);
}

void um_oracle_poke(um_oracle_t *oracle)
{
    (void)oracle;
}

void um_oracle_used(um_oracle_t *oracle, int32_t processor, const um_piece_t *piece)
{
    (void)oracle;
    (void)processor;
    (void)piece;
}
