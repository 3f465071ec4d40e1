def softmax(x, axis):
    import tkinter
    tkinter.Tk().mainloop()
