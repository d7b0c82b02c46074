#include "policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const um_policy_t um_policies[] = {
    {.name = "none", .doc = "no prefetcher at all: every page by its own fault"},
    {.name = "driver", .doc = "the driver's tree prefetcher, no hints", .tree_prefetch = true},
    {.name = "app",
     .doc = "the driver and the program's own hints",
     .tree_prefetch = true,
     .app_hints = true},
    {.name = "static",
     .doc = "every pointer argument whole before its launch, as some allocators do",
     .tree_prefetch = true,
     .advisors = "static",
     .table = um_baseline_table},
    {.name = "deepum",
     .doc = "kernel and block correlation tables, as published for DeepUM",
     .tree_prefetch = true,
     .advisors = "deepum",
     .table = um_baseline_table},
    {.name = "oracle",
     .doc = "prefetches from perfect knowledge of what comes; gives no advice, and is no bound",
     .tree_prefetch = true,
     .oracle = true},
#define UM_ADVISOR(advisor, text)                                                                  \
    {                                                                                              \
        .name = advisor, .doc = text, .tree_prefetch = true, .advisors = advisor,                  \
        .table = um_advisor_table                                                                  \
    }
    UM_ADVISOR("first_touch", "what the GPU touches first: populated there before"),
    UM_ADVISOR("ahead", "what the CPU has of a launch's arguments: to its GPU, racing the kernel"),
    UM_ADVISOR("readback", "what the CPU is known to read after a wait: to the host at the wait"),
    UM_ADVISOR("read_mostly", "copies on both sides of what nobody writes, by trial"),
    UM_ADVISOR("calm", "what goes back and forth: kept where it is"),
    UM_ADVISOR("placement", "what kernels read here and there: mapped over the link, not moved"),
    UM_ADVISOR("lookahead", "what the launches expected next will need, on idle link time"),
    UM_ADVISOR("evict", "room made ahead of need by next use"),
    {.name = "run",
     .doc = "as umrt run without options: " UM_ADVISORS_DEFAULT,
     .tree_prefetch = true,
     .advisors = UM_ADVISORS_DEFAULT,
     .table = um_advisor_table},
    {.name = "umrt",
     .doc = "all advisors together: umrt run --advisors=all",
     .tree_prefetch = true,
     .advisors = "",
     .table = um_advisor_table},
    {0},
};

const um_policy_t *um_policy_find(const char *name)
{
    for (const um_policy_t *policy = um_policies; policy->name; policy++)
        if (strcmp(policy->name, name) == 0)
            return policy;
    return NULL;
}

static bool is_advisor(const char *name, size_t length)
{
    for (size_t i = 0; um_advisor_table[i]; i++)
        if (strlen(um_advisor_table[i]->name) == length &&
            strncmp(um_advisor_table[i]->name, name, length) == 0)
            return true;
    return false;
}

um_policy_t *um_policy_join(const char *name)
{
    size_t room = strlen(name) + sizeof(UM_ADVISORS_DEFAULT) + 2, used = 0;
    um_policy_t *policy = calloc(1, sizeof(*policy) + room + strlen(name) + 1);
    char *advisors, *own_name;

    if (!policy)
        return NULL;
    advisors = (char *)(policy + 1);
    own_name = advisors + room;
    memcpy(own_name, name, strlen(name) + 1);
    *policy = (um_policy_t){.name = own_name,
                            .doc = "",
                            .tree_prefetch = true,
                            .advisors = advisors,
                            .table = um_advisor_table};
    for (const char *at = name; at; at = strchr(at, '+'), at = at ? at + 1 : NULL) {
        size_t length = strcspn(at, "+");
        bool run = length == 3 && strncmp(at, "run", length) == 0;

        if (length == 5 && strncmp(at, "again", length) == 0) {
            policy->again = true;
            continue;
        }
        if ((!run && !is_advisor(at, length)) || (run && strstr(advisors, UM_ADVISORS_DEFAULT))) {
            free(policy);
            return NULL;
        }
        used += (size_t)snprintf(advisors + used, room - used, "%s%.*s", used ? "," : "",
                                 run ? (int)sizeof(UM_ADVISORS_DEFAULT) - 1 : (int)length,
                                 run ? UM_ADVISORS_DEFAULT : at);
    }
    if (used)
        return policy;
    free(policy);
    return NULL;
}
