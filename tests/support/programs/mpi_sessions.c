/* Sessions of a library of MPI 4. */
int MPI_Session_init(void *info, void *handler, int *session) {
    return info != handler || (*session = 7) == 0;
}
int MPI_Session_finalize(int *session) {
    return *session != 7;
}
