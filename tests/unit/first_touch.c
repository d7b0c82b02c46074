/* What the user says of a region, to advisors/first_touch.c. */
#include <criterion/criterion.h>

#include "program_fake.h"

Test(first_touch, leaves_to_the_cpu_what_the_user_says_is_its_first)
{
    program_start("first_touch", NULL);
    allocate(1, 0, 16 * MIB);
    say(1, UM_REGION_HINT_CPU_FIRST);
    cr_assert_eq(run(7, 1), 0);
    allocate(2, 32 * MIB, 16 * MIB);
    cr_assert_geq(run(7, 2), 1);
    program_stop();
}
