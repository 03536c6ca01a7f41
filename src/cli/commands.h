/* Each command is one function. Its argv[0] is the command's name, and it returns the exit code. */
#pragma once

int push_main(int argc, char **argv);
int run_main(int argc, char **argv);
int watch_main(int argc, char **argv);
int init_main(int argc, char **argv);
int proven_main(int argc, char **argv);
int events_main(int argc, char **argv);
int fleet_main(int argc, char **argv);
int forget_main(int argc, char **argv);
int gc_main(int argc, char **argv);
int status_main(int argc, char **argv);
int verify_main(int argc, char **argv);
int manifest_main(int argc, char **argv);
int config_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int lock_main(int argc, char **argv);
int version_main(int argc, char **argv);
