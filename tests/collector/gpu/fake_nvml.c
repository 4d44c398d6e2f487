/* A small NVML: two GPUs, structs as nvml.h lays them out. GPU 1 falls off the bus when its power is asked for. */
#include <stdio.h>
#include <string.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, TOO_SMALL = 7, TIMEOUT = 10, LOST = 15, WRONG_VERSION = 25 };

typedef struct { int index; } Device;
static Device devices[2] = {{0}, {1}};
static int events = 1;

typedef struct {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
} PciInfo;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory;
typedef struct { unsigned version, sensor; int temperature; } Temperature;
typedef struct { unsigned version; int margin; } Margin;
typedef struct { unsigned long long reference_us, violation_ns; } Violation;
typedef union {
  double d; unsigned u; unsigned long ul; unsigned long long ull; long long ll; int i; unsigned short s;
} Value;
typedef struct {
  unsigned id, scope;
  long long timestamp, latency;
  unsigned type, code;
  Value value;
} Field;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } Process;
typedef struct {
  unsigned version;
  unsigned char cluster[16];
  unsigned status, clique, state, health;
} Fabric;
typedef struct {
  Device *device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
} EventData;

int nvmlInitWithFlags(unsigned flags) { return flags == 0 ? OK : INVALID; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == LOST ? "GPU is lost" : "an error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { return snprintf(text, size, "590.48.01") > 0 ? OK : INVALID; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 13010; return OK; }
int nvmlSystemGetProcessName(unsigned pid, char *text, unsigned size) {
  return snprintf(text, size, pid == 42 ? "/usr/bin/caf\xc3\xa9 --secret=1" : "/opt/\xff") > 0 ? OK : INVALID;
}
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) { *device = &devices[index]; return OK; }
int nvmlDeviceGetUUID(Device *d, char *text, unsigned size) { return snprintf(text, size, "GPU-%d", d->index) > 0 ? OK : INVALID; }
int nvmlDeviceGetName(Device *d, char *text, unsigned size) { return snprintf(text, size, "Example") > 0 && d ? OK : INVALID; }
int nvmlDeviceGetPciInfo_v3(Device *d, PciInfo *info) {
  snprintf(info->bus_id, sizeof info->bus_id, "00000000:9%c:00.0", 'B' + d->index);
  return OK;
}
int nvmlDeviceGetMemoryInfo_v2(Device *d, Memory *m) {
  if (m->version != (sizeof *m | 2u << 24)) return WRONG_VERSION;
  m->total = 85899345920ULL; m->reserved = 1ULL << 29; m->used = 64424509440ULL + d->index; m->free = 20937965568ULL;
  return OK;
}
int nvmlDeviceGetPowerUsage(Device *d, unsigned *milliwatts) {
  *milliwatts = 312500;
  return d->index ? LOST : OK;
}
int nvmlDeviceGetTotalEnergyConsumption(Device *d, unsigned long long *mj) { *mj = 5000000000123ULL + d->index; return OK; }
int nvmlDeviceGetTemperatureV(Device *d, Temperature *t) {
  if (t->version != (sizeof *t | 1u << 24)) return WRONG_VERSION;
  t->temperature = 66 + d->index;
  return OK;
}
int nvmlDeviceGetMarginTemperature(Device *d, Margin *m) {
  if (m->version != (sizeof *m | 1u << 24)) return WRONG_VERSION;
  m->margin = -3 - d->index;
  return OK;
}
int nvmlDeviceGetViolationStatus(Device *d, unsigned policy, Violation *v) {
  v->reference_us = 1; v->violation_ns = policy == 1 && d ? 2500000000ULL : 0;
  return policy < 6 ? OK : NOT_SUPPORTED;
}
int nvmlDeviceGetFieldValues(Device *d, int count, Field *fields) {
  for (int i = 0; i < count; i++) {
    Field *f = &fields[i];
    f->code = OK; f->type = 3;
    if (f->id == 82) f->type = 1, f->value.u = 71;
    else if (f->id == 91) f->type = 1, f->value.u = 2;
    else if (f->id == 186) f->type = 1, f->value.u = 300250;
    else if (f->id == 138 || f->id == 139) f->value.ull = f->scope == 0xFFFFFFFFu ? 30 : 10 * (f->scope + 1);
    else f->code = d ? NOT_SUPPORTED : INVALID;
  }
  return OK;
}
int nvmlDeviceGetNvLinkState(Device *d, unsigned link, unsigned *active) { *active = link < 2 && d; return link < 2 ? OK : INVALID; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device *d, unsigned link, PciInfo *info) {
  snprintf(info->bus_id, sizeof info->bus_id, "00000000:9%c:00.0", 'C' - d->index + 0 * link);
  return OK;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(Device *d, unsigned link, unsigned *type) { *type = 0 * link; return d ? OK : INVALID; }
int nvmlDeviceGetComputeRunningProcesses_v3(Device *d, unsigned *count, Process *list) {
  static const Process running[2] = {{42, 1ULL << 30, ~0u, ~0u}, {43, ~0ULL, ~0u, ~0u}};
  unsigned room = *count;
  *count = 2;
  if (!list || room < 2) return TOO_SMALL;
  memcpy(list, running, sizeof running);
  return d ? OK : INVALID;
}
int nvmlDeviceGetCpuAffinity(Device *d, unsigned words, unsigned long *set) {
  memset(set, 0, words * sizeof *set);
  set[1] = 0xFUL << (4 * d->index);
  return OK;
}
int nvmlDeviceGetGpuFabricInfoV(Device *d, Fabric *f) {
  if (f->version != (sizeof *f | 2u << 24)) return WRONG_VERSION;
  f->state = 3; f->health = d->index;
  return OK;
}
int nvmlEventSetCreate(void **set) { *set = &events; return OK; }
int nvmlEventSetFree(void *set) { return set == &events ? OK : INVALID; }
int nvmlDeviceRegisterEvents(Device *d, unsigned long long types, void *set) { return d && types == 8 && set == &events ? OK : INVALID; }
int nvmlEventSetWait_v2(void *set, EventData *data, unsigned timeout) {
  if (set != &events || !timeout || events > 3) return TIMEOUT;
  events++;
  *data = (EventData){&devices[1], 8, 79, ~0u, ~0u};
  return OK;
}
