/* A file that a test writes comes in; NVML's answers go out, as libnvidia-ml.so.1 gives them.
 *
 * The file is named by CT_STUB_NVML and mapped when NVML is initialised; without it there is "no driver".
 * Its layout is that of the ctypes structures in nvml_stub.py: change both together.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, NO_DRIVER = 9 };

#define GPUS 16
#define SLICES 8
#define PIDS 8

typedef struct {
    char uuid[96];
    uint32_t multiprocessors, sevenths, gpu_instance, compute_instance;
} slice_t;

typedef struct {
    char name[96], uuid[96];
    uint64_t energy_mj, live_since_ns;
    uint64_t power_calls, energy_calls, process_calls;
    uint32_t power_mw, limit_mw, live, delay_us, multiprocessors, utilization;
    uint32_t error, power_error, energy_error, limit_error, handle_error, utilization_error;
    uint32_t mig, slice_count, pid_count;
    uint32_t pids[PIDS];
    uint32_t work[PIDS]; /* utilisation of the multiprocessors by each of them, % */
    slice_t slices[SLICES];
} gpu_t;

typedef struct {
    uint64_t writing; /* odd while a test changes power and energy of a live GPU */
    uint64_t init_calls, shutdown_calls;
    uint32_t count, init_error;
    gpu_t gpus[GPUS];
} control_t;

typedef struct {
    uint32_t gpu, memory;
} utilization_t;

typedef struct {
    uint32_t pid, pad;
    unsigned long long memory;
    uint32_t gpu_instance, compute_instance;
} process_t;

typedef struct {
    uint32_t pid;
    unsigned long long at_us;
    uint32_t multiprocessors, memory, encoder, decoder;
} work_t;

typedef struct {
    uint32_t multiprocessors, copy, decoder, encoder, jpeg, ofa, gpu_slices, compute_slices;
    unsigned long long memory_mb;
} attributes_t;

typedef struct {
    uint32_t version, id, p2p, slices, instances, multiprocessors, copy, decoder, encoder, jpeg, ofa;
    unsigned long long memory_mb;
    char name[96];
} profile_t;

typedef uintptr_t handle_t; /* the GPU's number + 1, and a slice's number + 1 in the bits above */

static control_t *control;
static int users;

static gpu_t *gpu_of(handle_t handle) {
    uintptr_t number = handle & 0xffff;
    return number && number <= control->count ? &control->gpus[number - 1] : NULL;
}

static slice_t *slice_of(handle_t handle) {
    uintptr_t number = handle >> 16;
    gpu_t *gpu = gpu_of(handle);
    return gpu && number && number <= gpu->slice_count ? &gpu->slices[number - 1] : NULL;
}

/* The error that a call on this device gives before it does anything, with the delay of a slow driver. */
static int check(handle_t handle, gpu_t **gpu) {
    *gpu = NULL;
    if (!users) return UNINITIALIZED;
    *gpu = gpu_of(handle);
    if (!*gpu) return INVALID;
    if ((*gpu)->delay_us) usleep((*gpu)->delay_us);
    return (int)(*gpu)->error;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    const char *path = getenv("CT_STUB_NVML");
    if (!path || !*path) return NO_DRIVER;
    int file = open(path, O_RDWR);
    if (file < 0) return NO_DRIVER;
    void *mapped = mmap(NULL, sizeof(control_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) return NO_DRIVER;
    control_t *found = mapped;
    __sync_fetch_and_add(&found->init_calls, 1);
    if (found->init_error) {
        int error = (int)found->init_error;
        munmap(mapped, sizeof(control_t));
        return error;
    }
    /* The old mapping stays: a call that hangs in another thread may still read it. */
    control = found;
    users++;
    return OK;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void) {
    if (!users) return UNINITIALIZED;
    users--;
    __sync_fetch_and_add(&control->shutdown_calls, 1);
    return OK;
}

const char *nvmlErrorString(int code) {
    switch (code) {
    case UNINITIALIZED: return "Uninitialized";
    case INVALID: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case NO_DRIVER: return "Driver Not Loaded";
    case 10: return "Timeout";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *text, unsigned int size) {
    if (!users) return UNINITIALIZED;
    snprintf(text, size, "stub");
    return OK;
}

int nvmlDeviceGetCount_v2(unsigned int *count) {
    if (!users) return UNINITIALIZED;
    *count = control->count;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, handle_t *handle) {
    if (!users) return UNINITIALIZED;
    if (index >= control->count) return INVALID;
    *handle = index + 1;
    return (int)control->gpus[index].handle_error;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, handle_t *handle) {
    if (!users) return UNINITIALIZED;
    for (uint32_t index = 0; index < control->count; index++)
        if (!strcmp(control->gpus[index].uuid, uuid)) return nvmlDeviceGetHandleByIndex_v2(index, handle);
    return NOT_FOUND;
}

int nvmlDeviceGetIndex(handle_t handle, unsigned int *index) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    if (!error) *index = (unsigned int)(gpu - control->gpus);
    return error;
}

int nvmlDeviceGetName(handle_t handle, char *text, unsigned int size) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    if (!error) snprintf(text, size, "%s", gpu->name);
    return error;
}

int nvmlDeviceGetUUID(handle_t handle, char *text, unsigned int size) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    slice_t *slice = error ? NULL : slice_of(handle);
    if (!error) snprintf(text, size, "%s", slice ? slice->uuid : gpu->uuid);
    return error;
}

int nvmlDeviceGetPowerUsage(handle_t handle, unsigned int *power_mw) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    if (!gpu) return error;
    __sync_fetch_and_add(&gpu->power_calls, 1);
    if (error || gpu->power_error) return error ? error : (int)gpu->power_error;
    *power_mw = gpu->power_mw;
    return OK;
}

int nvmlDeviceGetTotalEnergyConsumption(handle_t handle, unsigned long long *energy_mj) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    if (!gpu) return error;
    __sync_fetch_and_add(&gpu->energy_calls, 1);
    if (error || gpu->energy_error) return error ? error : (int)gpu->energy_error;
    volatile uint64_t *writing = &control->writing;
    uint64_t before;
    do {
        before = *writing;
        __sync_synchronize();
        uint64_t passed_ns = gpu->live ? now_ns() - gpu->live_since_ns : 0;
        *energy_mj = gpu->energy_mj + (uint64_t)((double)gpu->power_mw * (double)passed_ns / 1e9);
        __sync_synchronize();
    } while (before & 1 || before != *writing);
    return OK;
}

int nvmlDeviceGetUtilizationRates(handle_t handle, utilization_t *utilization) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    if (!error) error = gpu->mig ? NOT_SUPPORTED : (int)gpu->utilization_error;
    if (!error) *utilization = (utilization_t){gpu->utilization, 0};
    return error;
}

int nvmlDeviceGetEnforcedPowerLimit(handle_t handle, unsigned int *limit_mw) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    if (!error) error = (int)gpu->limit_error;
    if (!error) *limit_mw = gpu->limit_mw;
    return error;
}

int nvmlDeviceGetComputeRunningProcesses_v3(handle_t handle, unsigned int *count, process_t *processes) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    if (!gpu || error) return error;
    __sync_fetch_and_add(&gpu->process_calls, 1);
    unsigned int room = *count;
    *count = gpu->pid_count;
    if (!gpu->pid_count) return OK;
    if (room < gpu->pid_count) return TOO_SMALL;
    memset(processes, 0, gpu->pid_count * sizeof(process_t));
    for (uint32_t number = 0; number < gpu->pid_count; number++) processes[number].pid = gpu->pids[number];
    return OK;
}

/* As the driver: Not Found where no process did any work since. */
int nvmlDeviceGetProcessUtilization(
    handle_t handle, work_t *samples, unsigned int *count, unsigned long long since_us) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    if (error) return error;
    if (gpu->mig) return NOT_SUPPORTED;
    __sync_fetch_and_add(&gpu->process_calls, 1);
    unsigned long long now_us = now_ns() / 1000;
    unsigned int room = *count;
    *count = now_us > since_us ? gpu->pid_count : 0;
    if (!*count) return NOT_FOUND;
    if (!samples || room < *count) return TOO_SMALL;
    memset(samples, 0, *count * sizeof(work_t));
    for (uint32_t number = 0; number < *count; number++)
        samples[number] = (work_t){gpu->pids[number], now_us, gpu->work[number], 0, 0, 0};
    return OK;
}

int nvmlDeviceGetMigMode(handle_t handle, unsigned int *current, unsigned int *pending) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    if (error) return error;
    if (!gpu->multiprocessors) return NOT_SUPPORTED;
    *current = *pending = gpu->mig;
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(handle_t handle, unsigned int *count) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    if (!error) *count = gpu->mig ? SLICES : 0;
    return error;
}

int nvmlDeviceGetMigDeviceHandleByIndex(handle_t handle, unsigned int index, handle_t *slice) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    if (error) return error;
    if (!gpu->mig || index >= gpu->slice_count) return NOT_FOUND;
    *slice = handle | ((handle_t)(index + 1) << 16);
    return OK;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle_t slice, handle_t *handle) {
    gpu_t *gpu;
    int error = check(slice, &gpu);
    if (!error) *handle = slice & 0xffff;
    return error;
}

int nvmlDeviceGetGpuInstanceId(handle_t handle, unsigned int *id) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    slice_t *slice = error ? NULL : slice_of(handle);
    if (!error && !slice) return NOT_SUPPORTED;
    if (!error) *id = slice->gpu_instance;
    return error;
}

int nvmlDeviceGetComputeInstanceId(handle_t handle, unsigned int *id) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    slice_t *slice = error ? NULL : slice_of(handle);
    if (!error && !slice) return NOT_SUPPORTED;
    if (!error) *id = slice->compute_instance;
    return error;
}

/* As in NVML, of slices only. */
int nvmlDeviceGetAttributes_v2(handle_t handle, attributes_t *attributes) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    slice_t *slice = error ? NULL : slice_of(handle);
    if (!error && !slice) return NOT_SUPPORTED;
    if (error) return error;
    memset(attributes, 0, sizeof *attributes);
    attributes->multiprocessors = slice->multiprocessors;
    attributes->gpu_slices = slice->sevenths;
    return OK;
}

int nvmlDeviceGetGpuInstanceProfileInfoV(handle_t handle, unsigned int profile, profile_t *info) {
    gpu_t *gpu;
    int error = check(handle, &gpu);
    if (error) return error;
    if (profile != 4 || !gpu->multiprocessors) return NOT_SUPPORTED; /* 4: the profile of seven slices */
    info->multiprocessors = gpu->multiprocessors;
    info->slices = 7;
    return OK;
}
