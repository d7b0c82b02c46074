#include "core/kernels.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The flags as text: 'c' pointer to const, 'p' other pointer, '.' neither. "" = not understood. */
static const char *shown(const char *name)
{
    static char text[65];
    uint32_t flags[64];
    uint32_t n = um_mangled_param_flags(name, flags, 64);

    for (uint32_t i = 0; i < n && i < 64; i++)
        text[i] = flags[i] == (UM_PARAM_POINTER | UM_PARAM_CONST_POINTER) ? 'c'
                  : flags[i] == UM_PARAM_POINTER                          ? 'p'
                                                                          : '.';
    text[n < 64 ? n : 64] = '\0';
    return text;
}

typedef struct example {
    const char *name, *flags;
} example_t;

static void check(const example_t *example, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cr_expect_str_eq(shown(example[i].name), example[i].flags, "%s", example[i].name);
}

#define CHECK(examples) check(examples, sizeof examples / sizeof *examples)

/* Names as nvcc 13.0 made them from kernels of the kind that the comment shows. */
Test(mangled, tells_pointers_to_const_from_others)
{
    static const example_t example[] = {
        /* (float *, const float *, int) */
        {"_Z6simplePfPKfi", "pc."},
        /* (float *__restrict__, const float *__restrict__, const double *const, float **,
           const float *const *, float *const *) */
        {"_Z5restrPfPKfPKdPS_PKS1_PKS_", "pccpcc"},
        /* (volatile int *, const volatile int *, void *, const void *, const char *, uint64_t, float4,
           const float4 *) */
        {"_Z3volPViPVKiPvPKvPKcy6float4PKS8_", "pcpcc..c"},
        /* (float (*)(const float *, int), const float (*)[4], int (*)[3], int Plain::*) */
        {"_Z4fptrPFfPKfiEPA4_S_PA3_iMN2ns5PlainEi", "pcp."},
        {"_Z4statPKiPi", "cp"},
        {"_ZN36_GLOBAL__N__d6b1abfc_4_a_cu_07a894e24anonEPKiPi", "cp"},
        {"_Z4stepPKfPf.constprop.0", "cp"},
    };

    CHECK(example);
}

Test(mangled, leaves_structs_by_value_unflagged)
{
    static const example_t example[] = {
        {"_Z3bigN2ns5PlainEcsdS0_", "....."},
        {"_ZN2ns5innerENS_5PlainEPKS0_NS_3VecIfEENS_1EE", ".c.."},
    };

    CHECK(example);
}

Test(mangled, follows_template_arguments)
{
    static const example_t example[] = {
        {"_Z4tmplIfEvPKT_PS0_S0_", "cp."},   /* <float>(const T *, T *, T) */
        {"_Z4tmplIPKfEvPKT_PS2_S2_", "cpc"}, /* <const float *> of the same */
        {"_Z5tmplvIPKfEvT_i", "c."},         /* <const float *>(T, int) */
        {"_Z5tmplvIPfEvT_i", "p."},
        {"_Z3repIfKiEvPT_PT0_S2_S4_N2ns3VecIS1_EEPKNS6_IS3_EEPKS7_", "pcpc.cc"},
        {"_Z2ttIN2ns3VecEfEvT_IT0_EPS4_PKS4_", ".pc"}, /* template template parameter */
        {"_Z4valsIdLin3ELb1EEvPT_", "p"},              /* <double, -3, true> */
        {"_Z6fn_argIXadL_Z6targetiEEEvPKi", "c"},      /* <&target> */
        {"_Z3depIPfEvN2idIT_E4typeES2_", ".p"},        /* id<T>::type: not said */
    };

    CHECK(example);
}

/* The same for floating point: 'f', and 'p' for pointers to whatever. */
Test(mangled, tells_floating_point_from_integers)
{
    static const example_t example[] = {
        {"_Z6simplePfPKfif", "pp.f"},           {"_Z3allfdegDhDF16_DF16bDdCfjlmb", "fffffffff...."},
        {"_Z4tmplIfEvPKT_PS0_S0_", "ppf"}, /* <float>(const T *, T *, T) */
        {"_Z4tmplIiEvPKT_PS0_S0_", "pp."},      {"_Z4consIKdlEvT_T0_", "f."},
        {"_Z8variadicIJfPKidEEviDpT_", ".fpf"}, {"_Z4fptrPFfPKfiEN2ns5PlainE", "p."},
        {"_Z5againICfEvT_S1_S0_", "fff"},
    };

    for (size_t i = 0; i < sizeof example / sizeof *example; i++) {
        uint32_t flags[16], n = um_mangled_param_flags(example[i].name, flags, 16);

        cr_expect_eq(n, strlen(example[i].flags), "%s: %u", example[i].name, n);
        for (uint32_t k = 0; k < n && k < 16; k++)
            cr_expect_eq(example[i].flags[k],
                         flags[k] & UM_PARAM_POINTER ? 'p'
                         : flags[k] & UM_PARAM_FLOAT ? 'f'
                                                     : '.',
                         "%s: parameter %u", example[i].name, k);
    }
}

Test(mangled, expands_packs)
{
    static const example_t example[] = {
        {"_Z8variadicIJEEviDpT_", "."},           /* <>(int, Ts...) */
        {"_Z8variadicIJPfPKidEEviDpT_", ".pc."},  /* <float *, const int *, double> */
        {"_Z10variadic_pIJfPiEEviDpPKT_", ".cc"}, /* (int, const Ts *...) */
    };

    CHECK(example);
}

Test(mangled, understands_lambdas_and_library_kernels)
{
    static const example_t example[] = {
        {"_ZN2ns5applyIZ4mainEUliE_EEvT_PKS2_i", ".c."},
        {"_ZN3cub17CUB_300001_SM_9006detail10radix_sort29DeviceRadixSortOnesweepKernelINS1_5radix10"
         "policy_hubIfNS0_8NullTypeEyE10Policy1000ELNS0_9SortOrderE0EfS6_yiiNS1_21identity_"
         "decomposer_tEEEvPT5_SC_PT3_PKSD_PT1_PKSH_PT2_PKSL_T4_iiT6_",
         "pppcpcpc...."},
        {"_ZN3cub17CUB_300001_SM_9006detail10merge_sort26DeviceMergeSortMergeKernelINS2_10policy_"
         "hub"
         "IN6thrust23THRUST_300001_SM_900_NS6detail15normal_iteratorINS6_10device_ptrIfEEEEE9"
         "Policy600ESB_SB_SB_SB_jZ4mainEUlffE_ffEEvbT2_T3_T4_PT6_PT7_T5_PSH_SH_NS1_7vsmem_tE",
         "....pp.p.."},
        {"_ZN3cub17CUB_300001_SM_9006detail10radix_sort30DeviceRadixSortHistogramKernelINS1_"
         "5radix10"
         "policy_hubIfNS0_8NullTypeEyE10Policy1000ELNS0_9SortOrderE0EfyNS1_21identity_decomposer_t"
         "EEEvPT2_PKT1_SB_iiT3_",
         "pc...."},
    };
    /* SB_ in the last one is T2, an integer */

    CHECK(example);
}

Test(mangled, says_nothing_of_what_it_does_not_understand)
{
    static const example_t example[] = {
        {"plain_c", ""},
        {"", ""},
        {"_Z", ""},
        {"_Z7nothingv", ""},
        {"_Z3foo", ""},
        {"_Z3fooS_", ""},      /* no such substitution */
        {"_Z3fooT_", ""},      /* no template */
        {"_Z3fooIiEvT0_", ""}, /* no such argument */
        {"_Z99fooPf", ""},     /* name longer than the text */
        {"_Z3fooPfjunk$", ""},
        {"_Z1fIiENSt9enable_ifIXsr3std9is_signedIT_EE5valueEvE4typeEPf", ""}, /* expression */
        {"_Z1fIiEDTclcvT__EEEPf", ""},                                        /* decltype */
        {"_ZN3fooPf", ""},
        {"_Z1fDpT_", ""},
        {"_Z1fvPf", ""},
        {"_Z999999999999999999999999fPf", ""},
        {"_Z1fS99999999999999999999_", ""},
    };

    CHECK(example);
    cr_expect_eq(um_mangled_param_flags(NULL, NULL, 0), 0);
}

Test(mangled, counts_beyond_the_room_it_is_given)
{
    uint32_t flags[2] = {99, 99};

    cr_assert_eq(um_mangled_param_flags("_Z1fPKiPiPiPi", flags, 1), 4);
    cr_assert_eq(flags[0], UM_PARAM_POINTER | UM_PARAM_CONST_POINTER);
    cr_assert_eq(flags[1], 99);
    cr_assert_eq(um_mangled_param_flags("_Z1fPKiPi", NULL, 0), 2);
}

Test(mangled, bounds_depth_and_work)
{
    char *deep = malloc(200001);

    memcpy(deep, "_Z1f", 4);
    memset(deep + 4, 'P', 199996);
    deep[200000] = '\0';
    cr_assert_eq(um_mangled_param_flags(deep, NULL, 0), 0);
    memset(deep + 4, 'N', 199996);
    cr_assert_eq(um_mangled_param_flags(deep, NULL, 0), 0);
    memset(deep + 4, 'Z', 199996);
    cr_assert_eq(um_mangled_param_flags(deep, NULL, 0), 0);
    memset(deep + 4, 'i', 199996); /* more parameters than it walks */
    cr_assert_eq(um_mangled_param_flags(deep, NULL, 0), 0);
    free(deep);
}

Test(mangled, survives_every_cut_of_a_name)
{
    const char *name = "_ZN2ns5applyIZ4mainEUliE_JfPKiEEEvT_PKS2_iDpPKT0_PFvS_EA3_KM1ADv4_f";
    char *cut;

    for (size_t n = 0; n <= strlen(name); n++) {
        cut = malloc(n + 1); /* exactly as long: a sanitizer sees one byte too far */
        memcpy(cut, name, n);
        cut[n] = '\0';
        cr_assert_leq(um_mangled_param_flags(cut, NULL, 0), 64);
        free(cut);
    }
}
