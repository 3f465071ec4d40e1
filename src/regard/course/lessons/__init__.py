"""The lessons, `<NN-name>.en.md` and `<NN-name>.zh-CN.md`, and how they are found and read."""
