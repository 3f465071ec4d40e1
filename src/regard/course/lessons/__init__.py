"""The lessons, `<NN-name>.en.md` and `<NN-name>.zh-CN.md`, and their index."""
