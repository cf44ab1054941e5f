int MPI_Init(void), MPI_Finalize(void);
int run(void) {
    MPI_Init();
    return MPI_Finalize();
}
