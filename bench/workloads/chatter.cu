/* chatter - many small buffers that the CPU works on all the time, and the GPU a little. */
#include "workload.h"

static size_t kib = 64, buffers = 16, sweeps = 4;

int main(int argc, char **argv)
{
    work.steps = 200;
    work_start(argc, argv, {{"map", MAP}, {"before, back", BEFORE | BACK}, {"before", BEFORE}},
               {{"kib", "a buffer, in KiB", &kib},
                {"buffers", "how many", &buffers},
                {"sweeps", "of the CPU over each, a step", &sweeps}});
    std::vector<buffer<uint32_t>> data;
    buffer<unsigned long long> out = make<unsigned long long>(buffers, SMALL);

    for (size_t b = 0; b < buffers; b++)
        data.push_back(make<uint32_t>(kib << 8, SHARED));
    while (work_step()) {
        if (work.step == 0)
            for (size_t b = 0; b < buffers; b++)
                cpu_write(data[b].cpu, data[b].n, (uint32_t)b);
        for (size_t b = 0; b < buffers; b++) {
            for (size_t s = 0; s < sweeps; s++)
                for (size_t i = 0; i < data[b].n; i++)
                    data[b].cpu[i] = data[b].cpu[i] * 3 + (uint32_t)s;
        }
        for (size_t b = 0; b < buffers; b++) {
            to_gpu(data[b]);
            reduce<<<1, 128>>>(data[b].gpu, data[b].n, 64, out.gpu + b);
            hint_cpu(data[b]);
        }
        to_cpu(out);
        sync_gpu();
        work_sum(cpu_total(out));
    }
    for (buffer<uint32_t> &b : data)
        drop(b);
    drop(out);
    return work_end();
}
