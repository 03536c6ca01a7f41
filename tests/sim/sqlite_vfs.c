#include "machines.h"
void vfs_forget_process(struct machine_process *process)
{
}
