/*
 * code_print KEY - every change in the words of a CUDA version or a library, as a source file that a
 * compiler can check: tests/cli/code_compiles.sh.
 */
#include <stdio.h>
#include <string.h>

#include "report_code.h"

/* What the patterns leave to the program. */
static const char names[] =
    "extern float *grid, *halo, *p, *host, *stage;\nextern int *flag;\nextern int other_device;\n"
    "extern unsigned long n, rest, piece;\nextern cudaStream_t stream, copies;\n"
    "extern cudaEvent_t there;\n";

static void print(const char *text, bool python)
{
    fputs("    ", stdout);
    for (; *text; text++) {
        fputc(*text, stdout);
        if (*text == '\n')
            fputs("    ", stdout);
    }
    fputs(python ? "\n    pass\n" : "\n", stdout);
}

int main(int argc, char **argv)
{
    const um_dialect_t *dialect;
    um_cuda_form_t form;
    um_report_t *r = code_report();

    if (argc != 2 || !code_dialect(argv[1], &dialect, &form))
        return 2;
    if (!dialect->python)
        printf("#include <cuda_runtime_api.h>\n#ifdef LIBRARY\n#include LIBRARY\n#else\n%s#endif\n",
               names);
    for (int change = 1; change < UM_CHANGE_COUNT; change++) {
        um_finding_t f;
        um_code_t code;

        if (!code_finding(r, (um_change_t)change, &f))
            continue;
        if (um_code_write(r, &f, dialect, form, &code))
            return 1;
        printf(dialect->python ? "def code_%d():\n"
                               : "void code_%d(void);\nvoid code_%d(void)\n{\n",
               change, change);
        print(code.code, dialect->python);
        printf(dialect->python ? "def undo_%d():\n"
                               : "}\nvoid undo_%d(void);\nvoid undo_%d(void)\n{\n",
               change, change);
        print(code.undo, dialect->python);
        if (!dialect->python)
            puts("}");
        um_code_free(&code);
    }
    um_report_free(r);
    return 0;
}
