/* With a tool that was linked statically, such as mpiP: its functions are found before those of the witness.
 */
int PMPI_Init(int *argc, char ***argv), PMPI_Finalize(void);
int MPI_Init(int *argc, char ***argv) {
    return PMPI_Init(argc, argv);
}
int MPI_Finalize(void) {
    return PMPI_Finalize();
}
int main(void) {
    return MPI_Init(0, 0) + MPI_Finalize();
}
